-- The data that filled an entry's prices, and the day on which the data was recorded. Null: an administrator set the
-- prices, or there are none.
ALTER TABLE model_configs
    ADD COLUMN price_source text CHECK (price_source IN ('known_models', 'price_file')),
    ADD COLUMN price_recorded_on date;
