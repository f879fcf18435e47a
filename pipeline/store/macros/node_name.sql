-- A node has one name, however long a line writes it: "x3200c0s1b0n0.hsn.example.org" is "x3200c0s1b0n0"; addresses stay.
CREATE MACRO node_name(host) AS CASE WHEN regexp_full_match(host, '[0-9.]+') THEN host ELSE split_part(host, '.', 1) END;
