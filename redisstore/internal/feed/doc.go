// Package feed appends the events in the trails of agents to the feed of their organization: each once, in order, and numbered.
// One instance leads a feed at a time. docs/events.md has the protocol.
package feed
