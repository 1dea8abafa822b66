"""A study with people: the participants' page, the receiving end, collecting, audits of the noise."""
