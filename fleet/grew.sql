-- What grew between two builds, on which device classes: unreleased native bytes per recording in
-- the last dumps, by function.
WITH counted AS (
    SELECT device_class, build, count(*) AS n
    FROM recording
    WHERE app = '${app}' AND build IN ('${from}', '${to}')
    GROUP BY device_class, build
), summed AS (
    SELECT r.device_class, s.build, s.callsite, sum(s.live_bytes) AS bytes
    FROM sample s JOIN recording r ON r.rec = s.rec
    WHERE s.app = '${app}' AND s.build IN ('${from}', '${to}') AND s.is_last
    GROUP BY r.device_class, s.build, s.callsite
), functions AS (
    SELECT s.device_class, s.build, c.leaf, c.library, sum(s.bytes) AS bytes
    FROM summed s JOIN callsite c ON c.callsite = s.callsite
    GROUP BY s.device_class, s.build, c.leaf, c.library
), means AS (
    SELECT f.device_class, f.leaf, f.library,
           sum(CASE WHEN f.build = '${from}' THEN f.bytes / old.n ELSE 0 END) AS before,
           sum(CASE WHEN f.build = '${to}' THEN f.bytes / new.n ELSE 0 END) AS after
    FROM functions f
    JOIN counted old ON old.device_class = f.device_class AND old.build = '${from}'
    JOIN counted new ON new.device_class = f.device_class AND new.build = '${to}'
    GROUP BY f.device_class, f.leaf, f.library
)
SELECT device_class, leaf, library,
       CAST(round(before) AS BIGINT) AS bytes_before,
       CAST(round(after) AS BIGINT) AS bytes_after,
       CAST(round(after - before) AS BIGINT) AS grew
FROM means
WHERE after > before
ORDER BY grew DESC, device_class, leaf
LIMIT 20;
