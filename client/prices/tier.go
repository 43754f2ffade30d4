package prices

// tier is a service tier in which a provider can serve a call.
type tier int

const (
	standardTier tier = iota
	priorityTier
	flexTier
	tierCount
)

// tierNames end the names of prices that a tier has of its own.
var tierNames = map[string]tier{"priority": priorityTier, "flex": flexTier}

// requested returns the tiers that a request with this service_tier can get. The provider decides on auto, on none and on other
// values: by the project's settings or by its free capacity.
func requested(serviceTier string) []tier {
	switch serviceTier {
	case "default", "standard_only":
		return []tier{standardTier}
	case "priority":
		return []tier{priorityTier, standardTier}
	case "flex":
		return []tier{flexTier, standardTier}
	}
	return []tier{standardTier, priorityTier, flexTier}
}

// served returns the tiers in which a call can have been served: the one of its answer's service_tier, or, if that is none of them,
// those that the request can get.
func served(answered, asked string) []tier {
	switch answered {
	case "default", "standard":
		return []tier{standardTier}
	case "priority":
		return []tier{priorityTier}
	case "flex":
		return []tier{flexTier}
	}
	return requested(asked)
}

// HasTier reports whether a service tier, priority or flex, has its own base price of input, and of output unless that costs nothing
// in the standard tier. The tier's other prices alone would leave the rest at standard prices.
func (t *Table) HasTier(model, serviceTier string) bool {
	m, err := t.model(model)
	own, is := tierNames[serviceTier]
	if err != nil || !is {
		return false
	}
	return m.tiers[own][input].base != nil && (m.tiers[own][output].base != nil || m.tiers[standardTier][output].base.Sign() == 0)
}
