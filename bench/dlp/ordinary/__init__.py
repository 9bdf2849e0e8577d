"""Made-up documents as people and programs write them, with no sensitive value or with a labelled one.

`fields` makes ordinary values (times, ids, hashes, prices), `planted` sensitive ones with right check digits, `texts` has
the words of ten languages, `documents` the files, `turns` the requests of agents. `measure` counts what the patterns
would change in them. Everything follows from a seed. Templates and whole kinds are divided into `parts`: some are looked
at while patterns are written, the others only to see what that is worth; `second` has what was written last.
"""
