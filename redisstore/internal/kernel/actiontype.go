package kernel

import "strings"

// OtherTypes is what a session spends on action types beyond the first 64, and an agent in a day on those beyond its first 256.
const OtherTypes = "other"

// TypeNamed returns the action type that is stored by this name.
func TypeNamed(name string) string {
	if name == "" {
		return OtherTypes
	}
	return strings.ToValidUTF8(ManyLines.Replace(name), "\uFFFD") // a proxy may send any bytes
}

// ManyLines is the inverse of budgets/include/one_line.lua.
var ManyLines = strings.NewReplacer(`\\`, `\`, `\n`, "\n")
