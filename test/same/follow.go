package main

import (
	"fmt"
	"iter"
	"strconv"

	"remit/client"
)

// follow prints the events of all agents after the one with this number as they come, until the program is killed.
func follow(after string) {
	o := get(client.OrganizationFromEnv(client.Options{}))
	number := get(strconv.ParseInt(after, 10, 64))
	printEach(o.AllEvents(ctx, number), func(e client.OrganizationEvent) []any { return []any{e.Sequence, e.Type, e.ID} })
}

// trail prints the events of the agent at REMIT_AGENT after the one with this id as they come, until the program is killed.
func trail(after string) {
	agent := get(client.AgentFromEnv(client.Options{}))
	printEach(agent.Events(ctx, after), func(e client.Event) []any { return []any{e.ID, e.Type} })
}

func printEach[E any](events iter.Seq2[E, error], row func(E) []any) {
	for event, err := range events {
		must(err)
		fmt.Println(row(event)...)
	}
}
