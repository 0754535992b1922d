"""Doors to the engines that read data: DuckDB, and the footers of Parquet files."""
