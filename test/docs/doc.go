// Package docs tests the project's pages: their commands are pasted into shells as readers would, and the files and tests that they
// name exist.
package docs
