"""Linear machines for many rows: LinearSVC and LinearSVR."""
