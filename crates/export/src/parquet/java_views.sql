
-- Java heaps. `class` and `object` contain one row for each class and object of each dump.
CREATE OR REPLACE VIEW class AS SELECT * FROM read_parquet('class.parquet');
CREATE OR REPLACE VIEW object AS SELECT * FROM read_parquet('object.parquet');

-- Objects with their class names and their depth in the dominator tree.
CREATE OR REPLACE VIEW dominator AS
WITH RECURSIVE tree(dump_id, id, depth) AS (
  SELECT dump_id, id, 1 FROM object WHERE reachable AND dominator IS NULL
  UNION ALL
  SELECT o.dump_id, o.id, t.depth + 1
  FROM tree t JOIN object o ON o.dump_id = t.dump_id AND o.dominator = t.id
)
SELECT t.dump_id, t.id, t.depth, o.dominator, c.name AS class, o.root,
       o.shallow_bytes, o.native_bytes, o.retained_bytes, o.retained_n
FROM tree t
JOIN object o USING (dump_id, id)
LEFT JOIN class c ON c.dump_id = o.dump_id AND c.id = o.class;
