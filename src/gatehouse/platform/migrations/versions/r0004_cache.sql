-- cache -----------------------------------------------------------------------------------------------------------
-- `hit` or `miss` of the response cache; null where it was not asked.
ALTER TABLE usage_records ADD COLUMN cache text;
