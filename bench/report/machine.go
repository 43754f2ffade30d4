package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"remit/internal/redisproc"
)

// thisMachine describes the machine of a run in lines of the benchmark format: cores, memory and versions. The benchmarks
// name its processor themselves (cpu).
func thisMachine() (string, error) {
	memory, err := memoryGiB()
	if err != nil {
		return "", err
	}
	version, err := redisVersion()
	return fmt.Sprintf("machine: %d cores and %d GiB of memory\nredis: %s\ngo: %s\ndate: %s\n",
		runtime.NumCPU(), memory, version, runtime.Version(), time.Now().UTC().Format(time.DateOnly)), err
}

func memoryGiB() (int, error) {
	if runtime.GOOS == "darwin" {
		text, err := exec.Command("sysctl", "-n", "hw.memsize").Output()
		if err != nil {
			return 0, err
		}
		bytes, err := strconv.Atoi(strings.TrimSpace(string(text)))
		return bytes >> 30, err
	}
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	var kilobytes int
	_, err = fmt.Sscanf(string(text), "MemTotal: %d kB", &kilobytes)
	return (kilobytes + 1<<19) >> 20, err // rounded, because the kernel reserves some
}

// redisVersion reads "Redis server v=7.0.15 sha=…".
func redisVersion() (string, error) {
	path, err := redisproc.Find()
	if err != nil {
		return "", err
	}
	text, err := exec.Command(path, "--version").Output()
	if err != nil {
		return "", err
	}
	_, rest, _ := strings.Cut(string(text), "v=")
	version, _, found := strings.Cut(rest, " ")
	if !found {
		return "", fmt.Errorf("%s --version prints %q", path, text)
	}
	return version, nil
}
