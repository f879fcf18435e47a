-- A node has one name, however long a line writes it: "x3200c0s1b0n0.hsn.example.org" is "x3200c0s1b0n0"; addresses stay.
-- "localhost" is the name of every node, so of none.
CREATE MACRO node_name(host) AS CASE
    WHEN host IN ('localhost', 'localhost.localdomain', '127.0.0.1', '::1', '0.0.0.0') THEN NULL
    WHEN regexp_full_match(host, '[0-9.]+') THEN host
    ELSE split_part(host, '.', 1)
END;
