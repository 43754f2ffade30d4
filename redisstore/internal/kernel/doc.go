// Package kernel has what the rooms of the store share: the client and its scripts, who calls, idempotency keys, and what
// organizations use.
//
// Only keys.go spells keys. Only refusals.go, and the maps that rooms add to it, turn a script's reply codes into errors.
package kernel
