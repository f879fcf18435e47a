"""The communicators of one origin and sweep, and what connects the ranks of one."""

from __future__ import annotations

from sweepscope.dashboard.queries.failures import Scope
from sweepscope.dashboard.queries.query import Query

MAX_OFFERED = 200
_OF = "source_path = $source_path AND comm_index = $comm_index"


def communicators(scope: Scope) -> Query:
    """Communicators of several ranks whose links or rings are in a file: the largest of each file."""
    sql = f"""SELECT c.source_path, c.comm_index, c.nranks, c.ranks_seen, c.num_nodes, c.network, c.transports,
  c.is_membership_exact, c.line_no
FROM nccl_communicators AS c
WHERE c.source_path IN (SELECT source_path FROM nccl_files WHERE {scope.condition}) AND c.nranks > 1
  AND (c.source_path, c.comm_index) IN (
    SELECT source_path, comm_index FROM nccl_links UNION SELECT source_path, comm_index FROM nccl_graphs
  )
QUALIFY row_number() OVER (PARTITION BY c.source_path, c.nranks, c.num_nodes ORDER BY c.comm_index) = 1
ORDER BY c.num_nodes DESC NULLS LAST, c.nranks DESC, c.source_path, c.comm_index
LIMIT {MAX_OFFERED}"""
    return Query(sql, scope.params)


def ranks(source_path: str, comm_index: int) -> Query:
    """Its ranks: where each ran."""
    return _one(
        f"SELECT rank, host, cuda_dev, bus_id, init_time_s, coll_calls FROM nccl_ranks\nWHERE {_OF}\nORDER BY rank",
        source_path,
        comm_index,
    )


def links(source_path: str, comm_index: int) -> Query:
    """Its links, by pair, end and transport."""
    return _one(f"SELECT * FROM nccl_links\nWHERE {_OF}\nORDER BY rank_from, rank_to", source_path, comm_index)


def graphs(source_path: str, comm_index: int) -> Query:
    """Edges of its rings and trees."""
    return _one(f"SELECT * FROM nccl_graphs\nWHERE {_OF}\nORDER BY line_no, rank_from", source_path, comm_index)


def traffic(source_path: str) -> Query:
    """Bytes by operation and size of communicator, over the whole file; most first."""
    sql = """SELECT op, nranks, count(DISTINCT comm_index) AS communicators, sum(collectives)::BIGINT AS collectives,
  median(message_bytes) AS median_message_bytes, max(message_bytes) AS largest_message_bytes,
  sum(total_bytes)::BIGINT AS total_bytes
FROM nccl_collectives
WHERE source_path = $source_path
GROUP BY op, nranks
ORDER BY total_bytes DESC NULLS LAST, op, nranks"""
    return Query(sql, {"source_path": source_path})


def between_nodes(source_path: str) -> Query:
    """Derived bytes from host to host, over all communicators of the file; most first."""
    sql = """SELECT host_from, host_to, sum(link_bytes)::BIGINT AS total_bytes,
  count(DISTINCT comm_index) AS communicators
FROM nccl_traffic
WHERE source_path = $source_path AND host_from <> host_to
GROUP BY host_from, host_to
ORDER BY total_bytes DESC, host_from, host_to"""
    return Query(sql, {"source_path": source_path})


def _one(sql: str, source_path: str, comm_index: int) -> Query:
    return Query(sql, {"source_path": source_path, "comm_index": comm_index})
