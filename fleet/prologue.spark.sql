-- The files of a store for Spark SQL. views.sql comes next. Builds are texts: 007 is not 7.
SET spark.sql.sources.partitionColumnTypeInference.enabled = false;
CREATE OR REPLACE TEMPORARY VIEW recording_file USING parquet OPTIONS (path '${store}/v1/recording');
CREATE OR REPLACE TEMPORARY VIEW dump_file USING parquet OPTIONS (path '${store}/v1/dump');
CREATE OR REPLACE TEMPORARY VIEW sample_file USING parquet OPTIONS (path '${store}/v1/sample');
CREATE OR REPLACE TEMPORARY VIEW class_file USING parquet OPTIONS (path '${store}/v1/class');
CREATE OR REPLACE TEMPORARY VIEW leak_file USING parquet OPTIONS (path '${store}/v1/leak');
CREATE OR REPLACE TEMPORARY VIEW callsite_file USING parquet OPTIONS (path '${store}/v1/callsite');
CREATE OR REPLACE TEMPORARY VIEW class_name_file USING parquet OPTIONS (path '${store}/v1/class_name');
CREATE OR REPLACE TEMPORARY VIEW leak_name_file USING parquet OPTIONS (path '${store}/v1/leak_name');
