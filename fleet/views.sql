-- The tables of an app, for both engines. Units that `recording` does not name were replaced.
CREATE OR REPLACE TEMPORARY VIEW dump AS
SELECT * FROM dump_file WHERE unit IN (SELECT unit FROM recording);

CREATE OR REPLACE TEMPORARY VIEW sample AS
SELECT * FROM sample_file WHERE unit IN (SELECT unit FROM recording);

CREATE OR REPLACE TEMPORARY VIEW class AS
SELECT * FROM class_file WHERE unit IN (SELECT unit FROM recording);

CREATE OR REPLACE TEMPORARY VIEW leak AS
SELECT * FROM leak_file WHERE unit IN (SELECT unit FROM recording);

-- Names are in each build that has them.
CREATE OR REPLACE TEMPORARY VIEW callsite AS
SELECT callsite, max(leaf) AS leaf, max(library) AS library, max(stack) AS stack
FROM callsite_file GROUP BY callsite;

CREATE OR REPLACE TEMPORARY VIEW class_name AS
SELECT class, max(name) AS name FROM class_name_file GROUP BY class;

-- A leak is known by its references: the classes that leak can differ between apps.
CREATE OR REPLACE TEMPORARY VIEW leak_name AS
SELECT app, leak, max(class) AS class, max(path) AS path FROM leak_name_file GROUP BY app, leak;

-- Builds of an app in order: by number, as 99 comes before 100; others by their first day.
CREATE OR REPLACE TEMPORARY VIEW build AS
SELECT app, build, count(*) AS recordings,
       row_number() OVER (PARTITION BY app
                          ORDER BY coalesce(try_cast(build AS BIGINT), -1), min(day), build) AS place
FROM recording GROUP BY app, build;
