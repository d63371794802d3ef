-- The rows of an app for DuckDB. views.sql comes next.
CREATE OR REPLACE TEMPORARY VIEW recording_file AS SELECT * FROM read_parquet('${store}/v1/recording/*/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false) WHERE app = '${app}';
CREATE OR REPLACE TEMPORARY VIEW dump_file AS SELECT * FROM read_parquet('${store}/v1/dump/*/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false) WHERE app = '${app}';
CREATE OR REPLACE TEMPORARY VIEW sample_file AS SELECT * FROM read_parquet('${store}/v1/sample/*/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false) WHERE app = '${app}';
CREATE OR REPLACE TEMPORARY VIEW class_file AS SELECT * FROM read_parquet('${store}/v1/class/*/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false) WHERE app = '${app}';
CREATE OR REPLACE TEMPORARY VIEW leak_file AS SELECT * FROM read_parquet('${store}/v1/leak/*/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false) WHERE app = '${app}';
CREATE OR REPLACE TEMPORARY VIEW callsite_file AS SELECT * FROM read_parquet('${store}/v1/callsite/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false) WHERE app = '${app}';
CREATE OR REPLACE TEMPORARY VIEW class_name_file AS SELECT * FROM read_parquet('${store}/v1/class_name/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false) WHERE app = '${app}';
CREATE OR REPLACE TEMPORARY VIEW leak_name_file AS SELECT * FROM read_parquet('${store}/v1/leak_name/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false) WHERE app = '${app}';

-- A compaction leaves the files that it replaced for a while: a recording is in the unit of its
-- highest generation. All views need this table, so it is read once, and before their files are
-- listed: otherwise a compaction could move a recording after its rows were listed.
CREATE OR REPLACE TEMPORARY TABLE recording AS
SELECT * FROM recording_file
QUALIFY row_number() OVER (PARTITION BY sha256 ORDER BY generation DESC, unit DESC) = 1;
