package gateway

import (
	"container/list"
	"net"
	"net/http"
	"sync"
)

// waitingConnections bounds the connections. When there are too many, the one that has waited for a request for longest is closed:
// connections without requests keep no client out.
type waitingConnections struct {
	mu    sync.Mutex
	most  int                        // 0: any number
	all   map[net.Conn]*list.Element // nil: it has a request
	order list.List                  // of those that wait
}

func (w *waitingConnections) setMost(most int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.most = most
}

// note is http.Server's ConnState.
func (w *waitingConnections) note(c net.Conn, state http.ConnState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at := w.all[c]; at != nil {
		w.order.Remove(at)
	}
	switch state {
	case http.StateNew:
		w.makeRoom()
		w.wait(c)
	case http.StateIdle:
		w.wait(c)
	case http.StateActive:
		w.all[c] = nil
	case http.StateClosed, http.StateHijacked:
		delete(w.all, c)
	}
}

func (w *waitingConnections) wait(c net.Conn) {
	if w.all == nil {
		w.all = map[net.Conn]*list.Element{}
	}
	w.all[c] = w.order.PushBack(c)
}

func (w *waitingConnections) makeRoom() {
	oldest := w.order.Front()
	if w.most == 0 || len(w.all) < w.most || oldest == nil {
		return
	}
	c := w.order.Remove(oldest).(net.Conn)
	delete(w.all, c)
	go func() { _ = c.Close() }() // one with TLS says so first, which can take some seconds
}
