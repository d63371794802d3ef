-- Views over the tables that `heaptap convert --format parquet` writes, for DuckDB:
--
--     cd DIR && duckdb -init views.sql
--
-- docs/reference/formats.md describes the tables.

CREATE OR REPLACE VIEW dump AS SELECT * FROM read_parquet('dump.parquet');
CREATE OR REPLACE VIEW frame AS SELECT * FROM read_parquet('frame.parquet');
CREATE OR REPLACE VIEW callsite AS SELECT * FROM read_parquet('callsite.parquet');
CREATE OR REPLACE VIEW sample AS SELECT * FROM read_parquet('sample.parquet');

-- Each callsite with its stack as text, callers first: `main;load;malloc`.
CREATE OR REPLACE VIEW stack AS
WITH RECURSIVE path(id, depth, frame, stack) AS (
  SELECT id, depth, frame, CAST('' AS VARCHAR) FROM callsite WHERE parent IS NULL
  UNION ALL
  SELECT c.id, c.depth, c.frame,
         CASE WHEN p.stack = '' THEN f.function ELSE p.stack || ';' || f.function END
  FROM path p
  JOIN callsite c ON c.parent = p.id
  JOIN frame f ON f.id = c.frame
)
SELECT id, depth, frame, stack FROM path;

-- Sums of callsites including their callees, by dump.
CREATE OR REPLACE VIEW cumulative AS
WITH RECURSIVE up(dump_id, node, callsite) AS (
  SELECT dump_id, callsite, callsite FROM sample
  UNION ALL
  SELECT u.dump_id, c.parent, u.callsite
  FROM up u JOIN callsite c ON c.id = u.node
  WHERE c.parent IS NOT NULL
)
SELECT u.dump_id, u.node AS callsite,
       sum(s.alloc_bytes) AS alloc_bytes, sum(s.alloc_n) AS alloc_n,
       sum(s.live_bytes) AS live_bytes, sum(s.live_n) AS live_n
FROM up u JOIN sample s ON s.dump_id = u.dump_id AND s.callsite = u.callsite
GROUP BY u.dump_id, u.node;

-- The last dump of each process and heap by callsite, with its location: the usual starting point.
CREATE OR REPLACE VIEW last_dump AS
SELECT s.*, d.dump, d.pid, d.process, f.function, f.library, f.file, f.line, t.stack
FROM sample s
JOIN dump d ON d.id = s.dump_id
JOIN stack t ON t.id = s.callsite
LEFT JOIN frame f ON f.id = t.frame
WHERE s.dump_id IN (SELECT max(id) FROM dump GROUP BY pid, heap);
