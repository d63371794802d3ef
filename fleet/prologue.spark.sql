-- The rows of an app for Spark SQL. views.sql comes next. Builds are texts: 007 is not 7. The files
-- of a table are listed here: recordings first, because a compaction could move a recording after
-- its rows were listed.
SET spark.sql.sources.partitionColumnTypeInference.enabled = false;
CREATE OR REPLACE TEMPORARY VIEW recording_store USING parquet OPTIONS (path '${store}/v1/recording');
CREATE OR REPLACE TEMPORARY VIEW dump_store USING parquet OPTIONS (path '${store}/v1/dump');
CREATE OR REPLACE TEMPORARY VIEW sample_store USING parquet OPTIONS (path '${store}/v1/sample');
CREATE OR REPLACE TEMPORARY VIEW class_store USING parquet OPTIONS (path '${store}/v1/class');
CREATE OR REPLACE TEMPORARY VIEW leak_store USING parquet OPTIONS (path '${store}/v1/leak');
CREATE OR REPLACE TEMPORARY VIEW callsite_store USING parquet OPTIONS (path '${store}/v1/callsite');
CREATE OR REPLACE TEMPORARY VIEW class_name_store USING parquet OPTIONS (path '${store}/v1/class_name');
CREATE OR REPLACE TEMPORARY VIEW leak_name_store USING parquet OPTIONS (path '${store}/v1/leak_name');
CREATE OR REPLACE TEMPORARY VIEW recording_file AS SELECT * FROM recording_store WHERE app = '${app}';
CREATE OR REPLACE TEMPORARY VIEW dump_file AS SELECT * FROM dump_store WHERE app = '${app}';
CREATE OR REPLACE TEMPORARY VIEW sample_file AS SELECT * FROM sample_store WHERE app = '${app}';
CREATE OR REPLACE TEMPORARY VIEW class_file AS SELECT * FROM class_store WHERE app = '${app}';
CREATE OR REPLACE TEMPORARY VIEW leak_file AS SELECT * FROM leak_store WHERE app = '${app}';
CREATE OR REPLACE TEMPORARY VIEW callsite_file AS SELECT * FROM callsite_store WHERE app = '${app}';
CREATE OR REPLACE TEMPORARY VIEW class_name_file AS SELECT * FROM class_name_store WHERE app = '${app}';
CREATE OR REPLACE TEMPORARY VIEW leak_name_file AS SELECT * FROM leak_name_store WHERE app = '${app}';

-- A compaction leaves the files that it replaced for a while: a recording is in the unit of its
-- highest generation. All views need this table, and Spark would read and sort it for each of them.
CREATE OR REPLACE TEMPORARY VIEW recording AS
SELECT * FROM recording_file
QUALIFY row_number() OVER (PARTITION BY sha256 ORDER BY generation DESC, unit DESC) = 1;
CACHE TABLE recording;
