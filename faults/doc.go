// Package faults breaks what the service stands on, while a fleet works with it, and checks what is left.
//
// It starts real redis-servers and real instances of the service, each a process. A fleet of agents calls them and a
// History records every call with its Outcome. Then the fault is injected. Check holds what the callers were told against
// what the service keeps afterwards; Scenario also checks that every instance is back within RecoveryLimit and that
// goroutines, connections and file descriptors are back at their baseline.
//
// Only the tests of this package use it. README.md says how a scenario is written.
package faults
