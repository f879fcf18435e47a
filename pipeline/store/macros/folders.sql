-- A folder and all folders above it, as texts: to be equal to one of them is to lie in it, and equality is a hash join,
-- where a prefix compares every row with every other.
CREATE MACRO folder_and_above(folder) AS list_transform(
    range(1, len(string_split(folder, '/')) + 1), lambda n: array_to_string(string_split(folder, '/')[1:n], '/')
);
