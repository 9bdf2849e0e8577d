-- conversations ---------------------------------------------------------------------------------------------------
-- the highest label number of redacted values, by entity type; numbering of later values continues after it
ALTER TABLE conversations ADD COLUMN label_numbers jsonb NOT NULL DEFAULT '{}';
