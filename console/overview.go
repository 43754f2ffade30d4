package console

func showOverview(v *visit) error { return v.show("overview", "Overview", nil) }
