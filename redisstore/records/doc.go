// Package records reads what is recorded: the trails of agents, the feeds of organizations, and what was used by day.
package records
