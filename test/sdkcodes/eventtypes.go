package main

import (
	"fmt"
	"strings"
)

// goEventTypes writes the type EventType and its constants, such as EventAgentCreated, aligned as gofmt does.
func goEventTypes(types []string) string {
	width := 0
	for _, t := range types {
		width = max(width, len(eventConstant(t)))
	}
	var text strings.Builder
	fmt.Fprintf(&text, "// %s\n\npackage client\n\n// EventType is the type of an event. A newer service may have types that are no constant here.\n"+
		"type EventType string\n\n// The types of events.\nconst (\n", header)
	for _, t := range types {
		fmt.Fprintf(&text, "\t%-*s EventType = %q\n", width, eventConstant(t), t)
	}
	text.WriteString(")\n")
	return text.String()
}

// eventConstant turns agent.secret_rotated into EventAgentSecretRotated.
func eventConstant(eventType string) string {
	name := camelCase(strings.ReplaceAll(eventType, ".", "_"))
	if strings.HasPrefix(name, "Event") { // EventsLost
		return name
	}
	return "Event" + name
}

// typeScriptEventTypes writes a union that editors complete and that still admits any text.
func typeScriptEventTypes(types []string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "// %s\n\n/** The type of an event. A newer service may have types that are not listed here. */\nexport type EventType =\n", header)
	for _, t := range types {
		fmt.Fprintf(&text, "  | %q\n", t)
	}
	text.WriteString("  | (string & {});\n")
	return text.String()
}

// pythonEventTypes writes a class with constants, such as EventType.AGENT_CREATED.
func pythonEventTypes(types []string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "# %s\n\"\"\"The types of events.\"\"\"\n\nfrom typing import Final\n\n\nclass EventType:\n"+
		"    \"\"\"The types of events, as constants. A newer service may have types that are not listed here.\"\"\"\n\n", header)
	for _, t := range types {
		fmt.Fprintf(&text, "    %s: Final = %q\n", strings.ToUpper(strings.ReplaceAll(t, ".", "_")), t)
	}
	return text.String()
}
