"""Made-up documents like those that people and programs write, without sensitive values or with a labelled one.

`fields` generates ordinary values (times, ids, hashes, prices), and `planted` generates sensitive values with right
check digits. `texts` has sentences in ten languages, `documents` generates documents, and `turns` generates the
requests of agents. `measure` counts the redactions that the patterns would make. All values depend only on a seed.
Templates and kinds of documents are divided into `parts`. Some parts are examined while patterns are written. The
others are held out to measure the result. `second` is the held-out part that was written last."""
