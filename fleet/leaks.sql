-- Confirmed and likely Java leaks of the app that no build before had.
WITH seen AS (
    SELECT l.leak, l.rec, l.build, r.phone, b.place
    FROM leak l
    JOIN recording r ON r.rec = l.rec
    JOIN build b ON b.app = l.app AND b.build = l.build
    WHERE l.app = '${app}' AND l.certainty <> 'possible' AND NOT l.known
), firsts AS (
    SELECT leak, min(place) AS place FROM seen GROUP BY leak
)
SELECT n.class, n.path, count(DISTINCT s.rec) AS recordings, count(DISTINCT s.phone) AS phones
FROM seen s
JOIN firsts f ON f.leak = s.leak AND f.place = s.place
JOIN leak_name n ON n.app = '${app}' AND n.leak = s.leak
WHERE s.build = '${to}'
GROUP BY n.class, n.path
ORDER BY recordings DESC, class, path;
