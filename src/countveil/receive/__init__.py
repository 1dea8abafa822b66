"""The receiving end of a study: reports come in by POST, are checked, and are on disk before they are answered."""
