// Package faults breaks Redis and the service while clients use them, and then checks that no acknowledged write is lost,
// nothing is charged twice and no revoked credential works.
//
// It starts real redis-servers and real instances of the service, each as a process. A [Workers] of workers calls the
// instances, and a [History] records every call with its [Outcome]. A scenario (a test) injects one fault meanwhile: it
// kills, freezes or partitions a process, fills a disk, cuts power, steps a clock or moves slots. [Check] then compares what
// callers got with what the service stores. [Scenario] also checks that every instance recovers within
// [RecoveryLimit], and that goroutines, connections and file descriptors return to their baseline.
//
// Mocks cannot show this: what is at stake is how the real Redis, its append-only file, the kernel's sockets and the client
// library behave together when one of them fails.
//
// Only the tests of this package use it. README.md explains how to write a scenario.
package faults
