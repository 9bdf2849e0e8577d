"""Made-up documents like those that people and programs write, without sensitive values or with a labelled one.

`fields` generates non-sensitive values (times, ids, hashes, prices), and `planted` generates sensitive values with
right check digits. `texts` has sentences in ten languages, `documents` generates documents, and `turns` generates the
requests of agents. `measure` counts the redactions that the patterns would make. All values depend only on a seed.

`parts` divides the templates into three sets. The development set is examined while patterns are written. The two
held-out sets are not, so they measure how the patterns generalize. `held_out_2` was written last."""
