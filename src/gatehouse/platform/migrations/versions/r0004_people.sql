-- conversations ---------------------------------------------------------------------------------------------------
-- the highest number of a redacted value's label, by entity type: later ones are numbered after it
ALTER TABLE conversations ADD COLUMN label_numbers jsonb NOT NULL DEFAULT '{}';
