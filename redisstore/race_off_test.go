//go:build !race

package redisstore

import ()

import ()

import ()

const raceDetector = false
