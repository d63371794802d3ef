-- Phones that differ from the others of their device class in a build: unreleased native bytes per
-- recording, more than 5 robust standard deviations (1.4826 × MAD) from the median of the phones.
WITH held AS (
    SELECT r.device_class, r.phone, r.rec, sum(d.live_bytes) AS bytes
    FROM dump d JOIN recording r ON r.rec = d.rec
    WHERE d.app = '${app}' AND d.build = '${to}' AND d.is_last AND d.heap <> 'java'
    GROUP BY r.device_class, r.phone, r.rec
), phones AS (
    SELECT device_class, phone, count(*) AS recordings, sum(bytes) / count(*) AS bytes
    FROM held
    GROUP BY device_class, phone
), middles AS (
    SELECT device_class, median(bytes) AS middle FROM phones GROUP BY device_class
), spreads AS (
    SELECT p.device_class, m.middle, 1.4826 * median(abs(p.bytes - m.middle)) AS spread
    FROM phones p JOIN middles m ON m.device_class = p.device_class
    GROUP BY p.device_class, m.middle
)
SELECT p.device_class, p.phone, CAST(p.recordings AS BIGINT) AS recordings,
       CAST(round(p.bytes) AS BIGINT) AS bytes,
       CAST(round(s.middle) AS BIGINT) AS median_bytes,
       CAST(round((p.bytes - s.middle) / s.spread) AS BIGINT) AS deviations
FROM phones p JOIN spreads s ON s.device_class = p.device_class
WHERE s.spread > 0 AND abs(p.bytes - s.middle) > 5 * s.spread
ORDER BY abs(p.bytes - s.middle) / s.spread DESC, p.phone;
