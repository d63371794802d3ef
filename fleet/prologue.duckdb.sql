-- The files of a store for DuckDB. views.sql comes next.
-- The recordings are a table, read before the other files are listed: DuckDB lists the files of a
-- view in each question, and a compaction could move a recording after its rows were listed.
CREATE OR REPLACE TEMPORARY TABLE recording_file AS SELECT * FROM read_parquet('${store}/v1/recording/*/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false);
CREATE OR REPLACE TEMPORARY VIEW dump_file AS SELECT * FROM read_parquet('${store}/v1/dump/*/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false);
CREATE OR REPLACE TEMPORARY VIEW sample_file AS SELECT * FROM read_parquet('${store}/v1/sample/*/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false);
CREATE OR REPLACE TEMPORARY VIEW class_file AS SELECT * FROM read_parquet('${store}/v1/class/*/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false);
CREATE OR REPLACE TEMPORARY VIEW leak_file AS SELECT * FROM read_parquet('${store}/v1/leak/*/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false);
CREATE OR REPLACE TEMPORARY VIEW callsite_file AS SELECT * FROM read_parquet('${store}/v1/callsite/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false);
CREATE OR REPLACE TEMPORARY VIEW class_name_file AS SELECT * FROM read_parquet('${store}/v1/class_name/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false);
CREATE OR REPLACE TEMPORARY VIEW leak_name_file AS SELECT * FROM read_parquet('${store}/v1/leak_name/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false);
