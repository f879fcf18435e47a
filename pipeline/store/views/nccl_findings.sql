-- Rules over NCCL's output, one common table expression each, every row with its file and line. A rule
-- speaks only where the lines decide: like runs are those of one origin and sweep with equal ranks and nodes, and a
-- group whose role does not follow from its size is left out.
CREATE VIEW nccl_findings AS
WITH rules(nccl_rule, remedy, fact_source) AS (
    VALUES
    ('socket_despite_ib',
        'Unset NCCL_IB_DISABLE and NCCL_NET=Socket; let the container see /dev/infiniband and libibverbs; check that '
        'NCCL_IB_HCA names devices that exist. NCCL_DEBUG_SUBSYS=INIT,NET prints why IB was passed over.',
        'NCCL user guide, environment variables NCCL_IB_DISABLE, NCCL_NET, NCCL_IB_HCA; src/transport/net_ib.cc'),
    ('socket_network',
        'Where the nodes have InfiniBand, RoCE or EFA: check ibv_devinfo inside the container, and that the network '
        'plugin is on LD_LIBRARY_PATH. Where they have Ethernet only, choose the interface by NCCL_SOCKET_IFNAME.',
        'NCCL user guide, environment variables NCCL_SOCKET_IFNAME, NCCL_NET_PLUGIN; src/transport/net_socket.cc'),
    ('gdrdma_off',
        'Load nvidia-peermem, or use a driver and kernel with DMA-BUF; turn off PCI ACS on bare metal; allow a larger '
        'distance between GPU and NIC by NCCL_NET_GDR_LEVEL. If only sends lack it: NCCL_NET_GDR_READ=1. Some '
        'networks and cards cannot do it.',
        'NCCL user guide, NCCL_NET_GDR_LEVEL, NCCL_NET_GDR_READ, troubleshooting "GPU Direct"; src/transport/net.cc'),
    ('net_within_node',
        'Ranks of one host that take each other for strangers talk over the network: give all containers of a host the '
        'same /proc/sys/kernel/random/boot_id and /dev/shm, or set NCCL_HOSTID to the host''s name. Else look for '
        'NCCL_P2P_DISABLE=1 together with NCCL_SHM_DISABLE=1.',
        'NCCL user guide, NCCL_HOSTID, NCCL_P2P_DISABLE, NCCL_SHM_DISABLE; src/misc/utils.cc (getHostHash)'),
    ('shm_within_node',
        'Unset NCCL_P2P_DISABLE; allow a larger distance by NCCL_P2P_LEVEL; turn off PCI ACS and the IOMMU on bare metal. '
        'GPUs without NVLink on different sockets do so by design.',
        'NCCL user guide, NCCL_P2P_DISABLE, NCCL_P2P_LEVEL, troubleshooting "GPU Direct"; src/transport/shm.cc'),
    ('idle_nics',
        'Hold the devices in use against nvidia-smi topo -m. Look for NCCL_IB_HCA, NCCL_TOPO_FILE, NCCL_MAX_NCHANNELS, for '
        'containers and VMs that hide PCI paths, and for ports that are down. Cards for storage stay idle on purpose: '
        'leave them out by NCCL_IB_HCA.',
        'NCCL user guide, NCCL_IB_HCA, NCCL_NETDEVS_POLICY, NCCL_TOPO_FILE; src/graph/search.cc'),
    ('ring_crossings',
        'NCCL orders a ring so that it enters and leaves each node once. If it does not, NCCL does not see which ranks '
        'share a node: look at NCCL_HOSTID, at containers with their own boot_id, and at NCCL_GRAPH_FILE and NCCL_TOPO_FILE.',
        'src/graph/connect.cc and search.cc: rings of nodes are joined into one; NCCL user guide, NCCL_HOSTID'),
    ('cross_nic',
        'Where each NIC of a node has a switch of its own (rails), set NCCL_CROSS_NIC=0 and give all nodes the same NICs '
        'and GPUs in the same order. On a fabric of one level it costs nothing.',
        'NCCL user guide, NCCL_CROSS_NIC; src/graph/search.cc'),
    ('tp_across_nodes',
        'Keep TP at or below the GPUs of a node and give neighbouring ranks to TP first; use PP or DP between nodes.',
        'Narayanan et al. 2021 (arXiv:2104.04473), section 3.2: tensor parallelism within a node'),
    ('slow_host',
        'Leave the host out (sbatch --exclude) and run nccl-tests on it with a known good one; look at '
        'nvidia-smi -q (clocks, retired rows), nvidia-smi nvlink -e, ibstat and the port''s error counters.',
        'nccl-tests doc/PERFORMANCE.md: bus bandwidth does not depend on the number of ranks'),
    ('low_busbw',
        'Run the benchmark again on the same hosts and on others: if it follows the hosts, take them out; if not, look '
        'for other jobs on the same switches.',
        'nccl-tests doc/PERFORMANCE.md: bus bandwidth does not depend on the number of ranks'),
    ('fewer_channels',
        'Compare NCCL_MAX_NCHANNELS, NCCL_MAX_CTAS and NCCL_TOPO_FILE with those runs, then NVLinks and NICs of the '
        'nodes: NCCL makes as many channels as the paths that it finds can feed.',
        'NCCL user guide, NCCL_MAX_NCHANNELS, NCCL_MAX_CTAS; src/graph/search.cc, src/graph/connect.cc'),
    ('mixed_versions_run',
        'Give every node one image; check LD_LIBRARY_PATH, LD_PRELOAD and torch.cuda.nccl.version() on each of them.',
        'src/bootstrap.cc and src/init.cc: ranks of different versions refuse each other, or do not share features'),
    ('mixed_versions_sweep',
        'Compare runs within one version only: algorithms, tuning and channels change from one release to the next.',
        'NCCL release notes; src/graph/tuning.cc'),
    ('sharp_fallback',
        'Harmless but for the speed. Check that the fabric''s aggregation manager (sharp_am) runs and lets this job '
        'in, or set NCCL_COLLNET_ENABLE=0, so that NCCL does not try.',
        'NCCL user guide, NCCL_COLLNET_ENABLE; src/transport/coll_net.cc'),
    ('slow_init',
        'Time in bootstrap is waiting for late ranks: look at the slowest rank''s node, its file system and its '
        'imports. Else look at NCCL_SOCKET_IFNAME (a wrong interface waits for its timeout).',
        'src/init.cc: Init timings, NCCL 2.22 and later')
),
known AS (
    SELECT
        n.source_path, n.run_dir, n.sweep, n.origin, n.nccl_flavour, n.nccl_version, n.networks, n.nccl_env,
        coalesce(f.unit, n.source_path) AS unit
    FROM nccl_files AS n
    LEFT JOIN files AS f ON f.path = n.source_path
),
net_links AS (
    SELECT
        source_path,
        count(*) AS links,
        count(*) FILTER (starts_with(transport, 'NET/Socket')) AS sockets,
        min(line_no) FILTER (starts_with(transport, 'NET/Socket')) AS socket_line,
        count(*) FILTER (is_rdma) AS rdma_links,
        count(*) FILTER (is_rdma AND NOT contains(transport, 'GDRDMA')) AS staged,
        count(*) FILTER (is_rdma AND NOT contains(transport, 'GDRDMA') AND direction = 'receive') AS staged_receives,
        min(line_no) FILTER (is_rdma AND NOT contains(transport, 'GDRDMA')) AS staged_line
    FROM (
        SELECT *, regexp_matches(transport, '^NET/(IB|UCX|OFI|(AWS )?Libfabric)') AS is_rdma
        FROM nccl_links
        WHERE starts_with(transport, 'NET/')
    )
    GROUP BY source_path
),
-- Where only the order of lines tells who belongs to a communicator, its ranks' places may be another's.
mixed AS (
    SELECT source_path, comm_index FROM nccl_communicators WHERE NOT is_membership_exact
),
-- Links between ranks whose hosts both stand in the file.
placed_links AS (
    SELECT l.*, a.host AS host_from, b.host AS host_to
    FROM nccl_links AS l
    JOIN nccl_ranks AS a
        ON a.source_path = l.source_path AND a.comm_index = l.comm_index AND a.rank = l.rank_from
    JOIN nccl_ranks AS b
        ON b.source_path = l.source_path AND b.comm_index = l.comm_index AND b.rank = l.rank_to
    ANTI JOIN mixed AS m ON m.source_path = l.source_path AND m.comm_index = l.comm_index
    WHERE l.rank_from <> l.rank_to AND a.host IS NOT NULL AND b.host IS NOT NULL
),
within_nodes AS (
    SELECT
        source_path, count(*) AS links,
        count(*) FILTER (starts_with(transport, 'NET/')) AS over_network,
        min(line_no) FILTER (starts_with(transport, 'NET/')) AS network_line,
        any_value(host_from) FILTER (starts_with(transport, 'NET/')) AS network_host,
        count(*) FILTER (starts_with(transport, 'SHM')) AS over_memory,
        min(line_no) FILTER (starts_with(transport, 'SHM')) AS memory_line
    FROM placed_links
    WHERE host_from = host_to
    GROUP BY source_path
),
-- Devices of the kind of link that is in use: a slower card for storage or login is no idle rail.
used_devices AS (
    SELECT
        l.source_path, l.host, count(DISTINCT d.net_device) AS used, count(DISTINCT l.rank) AS ranks,
        min(l.line_no) AS line_no, any_value(d.link_layer) AS link_layer, count(DISTINCT d.link_layer) AS layers,
        string_agg(DISTINCT d.device_name, ', ' ORDER BY d.device_name) AS names
    FROM (
        SELECT source_path, host_from AS host, rank_from AS rank, unnest(string_split(net_devices, ', ')) AS device, line_no
        FROM placed_links
        WHERE direction = 'send' AND starts_with(transport, 'NET/IB') AND host_from <> host_to
        UNION ALL
        SELECT source_path, host_to, rank_to, unnest(string_split(net_devices, ', ')), line_no
        FROM placed_links
        WHERE direction = 'receive' AND starts_with(transport, 'NET/IB') AND host_from <> host_to
    ) AS l
    JOIN nccl_devices AS d
        ON d.source_path = l.source_path AND d.host = l.host AND d.net_kind = 'IB' AND d.net_device::VARCHAR = l.device
    -- All communicators count, or a device that another one uses would seem idle.
    WHERE l.source_path NOT IN (SELECT source_path FROM mixed)
    GROUP BY l.source_path, l.host
),
idle AS (
    SELECT
        u.source_path, count(*) AS places, min(u.line_no) AS line_no,
        format('{} uses {} of its {} {} devices ({}) for {} GPUs', arg_min(u.host, (u.used, u.host)),
            min(u.used), arg_min(f.found, (u.used, u.host)), arg_min(u.link_layer, (u.used, u.host)),
            arg_min(u.names, (u.used, u.host)), arg_min(g.gpus, (u.used, u.host)))
            || CASE WHEN count(*) > 1 THEN format('; {} more hosts alike', count(*) - 1) ELSE '' END AS evidence
    FROM used_devices AS u
    JOIN (
        SELECT source_path, host, link_layer, count(DISTINCT net_device) AS found
        FROM nccl_devices WHERE net_kind = 'IB' AND net_device IS NOT NULL GROUP BY ALL
    ) AS f USING (source_path, host, link_layer)
    JOIN (
        SELECT source_path, host, count(DISTINCT (pid, cuda_dev)) AS gpus FROM nccl_ranks GROUP BY ALL
    ) AS g USING (source_path, host)
    WHERE u.layers = 1 AND u.used < least(f.found, g.gpus)
    GROUP BY u.source_path
),
ring_edges AS (
    SELECT source_path, comm_index, rank_from, rank_to, line_no, unnest(string_split(graph_channels, ',')) AS channel
    FROM nccl_graphs
    WHERE graph = 'ring'
),
rings AS (
    SELECT
        e.source_path, e.comm_index, e.channel, min(e.line_no) AS line_no, any_value(a.nranks) AS nranks,
        count(*) AS edges, count(DISTINCT a.host) AS hosts, count(*) FILTER (a.host <> b.host) AS crossings
    FROM ring_edges AS e
    JOIN nccl_ranks AS a ON a.source_path = e.source_path AND a.comm_index = e.comm_index AND a.rank = e.rank_from
    JOIN nccl_ranks AS b ON b.source_path = e.source_path AND b.comm_index = e.comm_index AND b.rank = e.rank_to
    ANTI JOIN mixed AS m ON m.source_path = e.source_path AND m.comm_index = e.comm_index
    GROUP BY e.source_path, e.comm_index, e.channel
),
ring_crossings AS (
    SELECT source_path, count(*) AS places, min(line_no) AS line_no,
        format('{} of {} rings cross between hosts more often than once per host; one of {} ranks {} times for {} hosts',
            count(*) FILTER (crossings > hosts), count(*), arg_max(nranks, crossings - hosts),
            arg_max(crossings, crossings - hosts), arg_max(hosts, crossings - hosts)) AS evidence
    FROM rings
    WHERE edges = nranks AND hosts > 1
    GROUP BY source_path
    HAVING count(*) FILTER (crossings > hosts) > 0
),
-- Numbers of devices mean the same only where all hosts list the same devices.
unlike_hosts AS (
    SELECT DISTINCT source_path
    FROM nccl_devices
    WHERE net_device IS NOT NULL
    GROUP BY source_path, net_kind, net_device
    HAVING count(DISTINCT device_name) > 1
),
cross_nics AS (
    SELECT
        s.source_path, count(*) FILTER (s.net_devices <> r.net_devices) AS places,
        min(s.line_no) FILTER (s.net_devices <> r.net_devices) AS line_no,
        format('{} of {} connections between nodes leave by another device than they arrive at',
            count(*) FILTER (s.net_devices <> r.net_devices), count(*))
            || format('; rank {} to {}: {} and {}',
                arg_min(s.rank_from, s.line_no) FILTER (s.net_devices <> r.net_devices),
                arg_min(s.rank_to, s.line_no) FILTER (s.net_devices <> r.net_devices),
                arg_min(s.net_devices, s.line_no) FILTER (s.net_devices <> r.net_devices),
                arg_min(r.net_devices, s.line_no) FILTER (s.net_devices <> r.net_devices)) AS evidence
    FROM nccl_links AS s
    JOIN nccl_links AS r
        ON r.source_path = s.source_path AND r.comm_index = s.comm_index AND r.rank_from = s.rank_from
        AND r.rank_to = s.rank_to AND r.transport = s.transport
    ANTI JOIN mixed AS m ON m.source_path = s.source_path AND m.comm_index = s.comm_index
    WHERE s.direction = 'send' AND r.direction = 'receive' AND starts_with(s.transport, 'NET/')
        AND NOT starts_with(s.transport, 'NET/Socket') AND s.source_path NOT IN (FROM unlike_hosts)
    GROUP BY s.source_path
    HAVING count(*) FILTER (s.net_devices <> r.net_devices) > 0
),
file_hosts AS (
    SELECT source_path, unnest(list(DISTINCT host)) AS host
    FROM nccl_ranks
    WHERE host IS NOT NULL
    GROUP BY source_path
),
rdma_hosts AS (
    SELECT k.origin, h.host, min(h.source_path) AS source_path
    FROM file_hosts AS h
    JOIN net_links AS l USING (source_path)
    JOIN known AS k USING (source_path)
    WHERE l.rdma_links > 0
    GROUP BY ALL
),
rdma_elsewhere AS (
    SELECT h.source_path, min(h.host) AS host, arg_min(r.source_path, h.host) AS other_path
    FROM file_hosts AS h
    JOIN known AS k USING (source_path)
    JOIN rdma_hosts AS r ON r.host = h.host AND r.origin IS NOT DISTINCT FROM k.origin AND r.source_path <> h.source_path
    GROUP BY h.source_path
),
unopened AS (
    SELECT source_path, arg_min(text, line_no) AS text
    FROM nccl_warnings
    WHERE warn_class = 'ib_device_unavailable'
    GROUP BY source_path
),
sockets AS (
    SELECT
        source_path, l.sockets AS places, l.socket_line AS line_no,
        format('{} of {} network links use NET/Socket', l.sockets, l.links) AS seen,
        CASE
            WHEN regexp_matches(k.nccl_env, 'NCCL_IB_DISABLE=[1-9]') THEN 'NCCL_IB_DISABLE=1 is set'
            WHEN regexp_matches(k.nccl_env, '(?i)NCCL_NET=socket') THEN 'NCCL_NET=Socket is set'
            WHEN l.rdma_links > 0 THEN format('{} others of the same file use RDMA', l.rdma_links)
            WHEN regexp_matches(k.networks, '(^|, )IB') THEN format('NCCL found {}', k.networks)
            WHEN u.text IS NOT NULL THEN format('a device could not be opened: {}', u.text)
            WHEN e.host IS NOT NULL THEN format('{} uses RDMA in {}', e.host, parse_filename(e.other_path))
        END AS because
    FROM net_links AS l
    JOIN known AS k USING (source_path)
    LEFT JOIN unopened AS u USING (source_path)
    LEFT JOIN rdma_elsewhere AS e USING (source_path)
    WHERE l.sockets > 0
),
staged AS (
    SELECT
        source_path, staged AS places, staged_line AS line_no,
        format('{} of {} RDMA links go without GDRDMA', staged, rdma_links)
            || CASE WHEN staged_receives = 0 THEN ', all of them sends' ELSE '' END AS evidence
    FROM net_links
    WHERE staged > 0
),
-- A group of TP ranks is the tensor-parallel one only when the whole layout is known, no other group has its size,
-- and the lines tell by an identity who belongs to it.
layouts AS (
    SELECT source_path, max(tp) AS tp, max(gpus_per_node) AS gpus_per_node,
        bool_and(dp * tp * pp * coalesce(cp, 1) = num_gpus) AND bool_and(
            tp NOT IN (dp, pp, coalesce(cp, 1), coalesce(ep, 1), dp * coalesce(cp, 1), num_gpus)
        ) AS is_told_by_size
    FROM runs
    WHERE tp > 1
    GROUP BY source_path
    HAVING count(DISTINCT tp) = 1
),
tensor_groups AS (
    SELECT
        c.source_path, count(*) FILTER (c.num_nodes > 1) AS places, min(c.line_no) FILTER (c.num_nodes > 1) AS line_no,
        format('TP{}: {} of the {} communicators of that size span {} nodes', any_value(l.tp),
            count(*) FILTER (c.num_nodes > 1), count(*), max(c.num_nodes)) AS evidence
    FROM nccl_communicators AS c
    JOIN layouts AS l USING (source_path)
    WHERE l.is_told_by_size AND c.nranks = l.tp AND c.is_membership_exact
    GROUP BY c.source_path
    HAVING count(*) FILTER (c.num_nodes > 1) > 0
),
tensor_wide AS (
    SELECT k.source_path, 1 AS places, NULL AS line_no,
        format('TP{} on nodes of {} GPUs', l.tp, l.gpus_per_node) AS evidence
    FROM known AS k
    JOIN layouts AS l USING (source_path)
    WHERE l.tp > l.gpus_per_node AND k.source_path NOT IN (SELECT source_path FROM tensor_groups)
),
largest AS (
    SELECT k.*, c.nranks, c.num_nodes, c.ring_channels, c.init_time_s, c.init_bootstrap_s, c.init_slowest_rank, c.line_no
    FROM nccl_communicators AS c
    JOIN known AS k USING (source_path)
    QUALIFY row_number() OVER (PARTITION BY source_path ORDER BY c.nranks DESC, c.comm_index) = 1
),
compared AS (
    SELECT
        *,
        median(ring_channels) OVER channels AS usual_channels, count(ring_channels) OVER channels AS with_channels,
        median(init_time_s) OVER times AS usual_init_s, count(init_time_s) OVER times AS with_times
    FROM largest
    WINDOW
        channels AS (PARTITION BY origin, sweep, nccl_flavour, nccl_version, nranks, num_nodes),
        times AS (PARTITION BY origin, sweep, nranks, num_nodes)
),
channels AS (
    SELECT source_path, 1 AS places, line_no,
        format('{} ring channels for {} ranks; the median of {} like runs is {:.0f}',
            ring_channels, nranks, with_channels, usual_channels) AS evidence
    FROM compared
    WHERE with_channels >= nccl_peers() AND ring_channels < usual_channels
),
inits AS (
    SELECT source_path, 1 AS places, line_no,
        format('{:.1f} s to initialise {} ranks; the median of {} like runs is {:.1f} s',
            init_time_s, nranks, with_times, usual_init_s)
            || coalesce(format(', {:.1f} s of it in bootstrap', init_bootstrap_s), '')
            || coalesce(format(', slowest rank {}', init_slowest_rank), '') AS evidence
    FROM compared
    WHERE with_times >= nccl_peers() AND init_time_s > usual_init_s * slow_init_factor()
        AND init_time_s > usual_init_s + slow_init_s()
),
-- Only benchmarks that were asked for the same, by version and environment as well, say something of the hosts.
best_bandwidths AS (
    SELECT
        k.*, b.op, b.nranks, b.num_nodes, b.message_bytes,
        b.line_no, greatest(b.busbw_bytes_per_s, b.in_place_busbw_bytes_per_s) AS busbw
    FROM nccl_bench AS b
    JOIN known AS k USING (source_path)
    WHERE b.op IS NOT NULL AND b.nranks > 1 AND busbw IS NOT NULL
    QUALIFY row_number() OVER (
        PARTITION BY source_path, b.op, b.nranks, b.num_nodes ORDER BY b.message_bytes DESC, busbw DESC, b.line_no
    ) = 1
),
bandwidths AS (
    SELECT *, median(busbw) OVER alike AS usual, count(*) OVER alike AS files_alike,
        busbw < low_busbw() * usual AND files_alike >= nccl_peers() AS is_low
    FROM best_bandwidths
    WINDOW alike AS (
        PARTITION BY origin, sweep, nccl_flavour, nccl_version, nccl_env, op, nranks, num_nodes, message_bytes
    )
),
low AS (
    SELECT
        b.source_path, 1 AS places, b.line_no,
        format('{} at {:.1f} GB/s with {} ranks; the median of {} like benchmarks is {:.1f} GB/s',
            b.op, b.busbw / 1e9, b.nranks, b.files_alike, b.usual / 1e9)
            || coalesce(' (hosts ' || (
                SELECT string_agg(h.host, ', ' ORDER BY h.host) FROM file_hosts AS h WHERE h.source_path = b.source_path
            ) || ')', '') AS evidence
    FROM bandwidths AS b
    WHERE b.is_low
),
slow_hosts AS (
    SELECT
        min(b.source_path) AS source_path, count(DISTINCT b.source_path) AS places,
        arg_min(b.line_no, b.source_path) AS line_no, h.host,
        format('{} is in {} benchmarks, each below {:.0f} % of the median of like ones; at worst {:.0f} %',
            h.host, count(*), low_busbw() * 100, min(b.busbw / b.usual) * 100) AS evidence
    FROM bandwidths AS b
    JOIN file_hosts AS h USING (source_path)
    WHERE b.files_alike >= nccl_peers()
    GROUP BY b.origin, b.sweep, h.host
    HAVING bool_and(b.is_low) AND count(DISTINCT b.source_path) > 1
),
-- Some banners name the CUDA version of the build and some do not: what follows the numbers is no version.
versions AS (
    SELECT origin, sweep, unit,
        coalesce(nccl_flavour || ' ', '') || regexp_replace(nccl_version, '^([0-9.]+).*', '\1') AS version,
        count(*) AS files, min(source_path) AS source_path
    FROM known
    WHERE nccl_version IS NOT NULL
    GROUP BY ALL
),
run_versions AS (
    SELECT arg_min(source_path, (files, version)) AS source_path, sum(files) AS places, NULL AS line_no,
        string_agg(format('{} in {} files', version, files), ', ' ORDER BY files DESC, version) AS evidence
    FROM versions
    GROUP BY origin, sweep, unit
    HAVING count(*) > 1
),
mismatches AS (
    SELECT source_path, sum(num_lines) AS places, min(line_no) AS line_no, arg_min(text, line_no) AS evidence
    FROM nccl_warnings
    WHERE warn_class = 'version_mismatch'
    GROUP BY source_path
),
of_sweeps AS (
    SELECT origin, sweep, version, sum(files) AS files, min(source_path) AS source_path
    FROM versions
    WHERE sweep IS NOT NULL
    GROUP BY ALL
),
sweep_versions AS (
    SELECT arg_min(source_path, (files, version)) AS source_path, sum(files) AS places, NULL AS line_no,
        format('{} versions in {} files: ', count(*), sum(files))
            || array_to_string(list(format('{} ({})', version, files) ORDER BY files DESC, version)[:4], ', ')
            || CASE WHEN count(*) > 4 THEN format(' and {} more', count(*) - 4) ELSE '' END AS evidence
    FROM of_sweeps
    GROUP BY origin, sweep
    HAVING count(*) > 1
),
sharp AS (
    SELECT source_path, sum(num_lines) AS places, min(line_no) AS line_no, arg_min(text, line_no) AS evidence
    FROM nccl_warnings
    WHERE warn_class = 'sharp_fallback'
    GROUP BY source_path
),
found AS (
    SELECT CASE WHEN because IS NULL THEN 'socket_network' ELSE 'socket_despite_ib' END AS nccl_rule, source_path,
        places, line_no, seen || coalesce('; ' || because, '') AS evidence
    FROM sockets
    UNION ALL BY NAME SELECT 'gdrdma_off' AS nccl_rule, * FROM staged
    UNION ALL BY NAME
    SELECT 'net_within_node' AS nccl_rule, source_path, over_network AS places, network_line AS line_no,
        format('{} of {} links inside nodes go over the network, on {}', over_network, links, network_host) AS evidence
    FROM within_nodes WHERE over_network > 0
    UNION ALL BY NAME
    SELECT 'shm_within_node' AS nccl_rule, source_path, over_memory AS places, memory_line AS line_no,
        format('{} of {} links inside nodes go through host memory', over_memory, links) AS evidence
    FROM within_nodes WHERE over_memory > 0
    UNION ALL BY NAME SELECT 'idle_nics' AS nccl_rule, * FROM idle
    UNION ALL BY NAME SELECT 'ring_crossings' AS nccl_rule, * FROM ring_crossings
    UNION ALL BY NAME SELECT 'cross_nic' AS nccl_rule, * FROM cross_nics
    UNION ALL BY NAME SELECT 'tp_across_nodes' AS nccl_rule, * FROM tensor_groups
    UNION ALL BY NAME SELECT 'tp_across_nodes' AS nccl_rule, * FROM tensor_wide
    UNION ALL BY NAME SELECT 'slow_host' AS nccl_rule, * FROM slow_hosts
    UNION ALL BY NAME SELECT 'low_busbw' AS nccl_rule, * FROM low
    UNION ALL BY NAME SELECT 'fewer_channels' AS nccl_rule, * FROM channels
    UNION ALL BY NAME SELECT 'mixed_versions_run' AS nccl_rule, * FROM run_versions
    UNION ALL BY NAME SELECT 'mixed_versions_run' AS nccl_rule, * FROM mismatches
    UNION ALL BY NAME SELECT 'mixed_versions_sweep' AS nccl_rule, * FROM sweep_versions
    UNION ALL BY NAME SELECT 'sharp_fallback' AS nccl_rule, * FROM sharp
    UNION ALL BY NAME SELECT 'slow_init' AS nccl_rule, * FROM inits
)
SELECT
    f.nccl_rule, f.evidence, r.remedy, r.fact_source, f.places::BIGINT AS places, k.origin, k.sweep, k.run_dir, f.source_path,
    f.line_no::BIGINT AS line_no, f.host
FROM found AS f
JOIN rules AS r USING (nccl_rule)
JOIN known AS k USING (source_path)
