-- The callsites that hold most in each build: unreleased native bytes per recording in the last
-- dumps.
WITH summed AS (
    SELECT build, callsite, sum(live_bytes) AS bytes
    FROM sample
    WHERE app = '${app}' AND is_last
    GROUP BY build, callsite
), ranked AS (
    SELECT build, callsite, bytes,
           row_number() OVER (PARTITION BY build ORDER BY bytes DESC, callsite) AS place
    FROM summed
    QUALIFY place <= 5
)
SELECT r.build, CAST(r.place AS BIGINT) AS place, c.leaf, c.library,
       CAST(round(r.bytes / b.recordings) AS BIGINT) AS bytes, c.stack
FROM ranked r
JOIN build b ON b.app = '${app}' AND b.build = r.build
JOIN callsite c ON c.callsite = r.callsite
ORDER BY b.place, r.place;
