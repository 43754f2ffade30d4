//go:build !linux

package faults

// openFiles returns 0: only Linux lists them in /proc.
func openFiles(int) (int, error) { return 0, nil }

// descriptorsOf returns nothing: only Linux lists them in /proc.
func descriptorsOf(int) string { return "" }

// closedByServer returns 0, as openFiles does.
func closedByServer(int, []int64) int { return 0 }

// removePreload does nothing: only Linux preloads a library into redis-server.
func removePreload() {}
