-- cache -----------------------------------------------------------------------------------------------------------
-- `hit` or `miss` of the response cache; null if the cache was not used.
ALTER TABLE usage_records ADD COLUMN cache text;
