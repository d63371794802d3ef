-- Which Java classes grew between two builds, on which device classes: reachable objects and
-- retained bytes per recording in the last dumps.
WITH counted AS (
    SELECT device_class, build, count(*) AS n
    FROM recording
    WHERE app = '${app}' AND build IN ('${from}', '${to}')
    GROUP BY device_class, build
), summed AS (
    SELECT r.device_class, c.build, c.class, sum(c.objects) AS objects,
           sum(c.retained_bytes) AS bytes
    FROM class c JOIN recording r ON r.rec = c.rec
    WHERE c.app = '${app}' AND c.build IN ('${from}', '${to}') AND c.is_last
    GROUP BY r.device_class, c.build, c.class
), means AS (
    SELECT s.device_class, s.class,
           sum(CASE WHEN s.build = '${from}' THEN s.objects / old.n ELSE 0 END) AS before,
           sum(CASE WHEN s.build = '${to}' THEN s.objects / new.n ELSE 0 END) AS after,
           sum(CASE WHEN s.build = '${to}' THEN s.bytes / new.n ELSE 0 END) AS bytes
    FROM summed s
    JOIN counted old ON old.device_class = s.device_class AND old.build = '${from}'
    JOIN counted new ON new.device_class = s.device_class AND new.build = '${to}'
    GROUP BY s.device_class, s.class
)
SELECT m.device_class, n.name AS class,
       CAST(round(m.before) AS BIGINT) AS objects_before,
       CAST(round(m.after) AS BIGINT) AS objects_after,
       CAST(round(m.bytes) AS BIGINT) AS retained_bytes_after
FROM means m JOIN class_name n ON n.class = m.class
WHERE m.after > m.before
ORDER BY objects_after - objects_before DESC, m.device_class, class
LIMIT 20;
