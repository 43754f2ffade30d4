package main

import (
	"fmt"
	"strings"
)

// goEventTypes writes the type EventType and its constants, such as EventAgentCreated.
func goEventTypes(types []string) string {
	return formatted(listed(types, "// "+header+"\n\npackage client\n\n"+
		"// EventType is the type of an event. A newer service may have types that are no constant here.\n"+
		"type EventType string\n\n// The types of events.\nconst (\n", func(t string) string {
		return fmt.Sprintf("%s EventType = %q\n", eventConstant(t), t)
	}, ")\n"))
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
	return listed(types, "// "+header+"\n\n/** The type of an event. A newer service may have types that are not listed here. */\n"+
		"export type EventType =\n", func(t string) string {
		return fmt.Sprintf("  | %q\n", t)
	}, "  | (string & {});\n")
}

// pythonEventTypes writes a class with constants, such as EventType.AGENT_CREATED.
func pythonEventTypes(types []string) string {
	return listed(types, "# "+header+"\n\"\"\"The types of events.\"\"\"\n\nfrom typing import Final\n\n\nclass EventType:\n"+
		"    \"\"\"The types of events, as constants. A newer service may have types that are not listed here.\"\"\"\n\n", func(t string) string {
		return fmt.Sprintf("    %s: Final = %q\n", strings.ToUpper(strings.ReplaceAll(t, ".", "_")), t)
	}, "")
}
