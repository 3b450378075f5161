"""The model file: saved, loaded, resumed.

- `file`: `rue.save`, `rue.load`, and every part of the file but the learner's, which `learner` has;
- `container`: the bytes, arrays and JSON with a digest; `arrays`: arrays without rows of zeros;
- `settings`: losses, sets and the like as JSON and back; `schema`: what any JSON of the file may hold;
- `watching`: intervals and alarms; `windows`: the sums of windows; `ensemble`: what is mixed with outside experts;
- `merging`: models of several parts of a stream, as one.
"""
