package history

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// memory is a storage client that forgets everything when the process ends.
type memory struct {
	mu     sync.Mutex
	values map[string][]byte
}

// NewMemory makes a client for collectors without a storage extension.
func NewMemory() storage.Client { return &memory{values: map[string][]byte{}} }

func (m *memory) Get(_ context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.values[key], nil
}

func (m *memory) Set(ctx context.Context, key string, value []byte) error {
	return m.Batch(ctx, storage.SetOperation(key, value))
}

func (m *memory) Delete(ctx context.Context, key string) error {
	return m.Batch(ctx, storage.DeleteOperation(key))
}

func (m *memory) Batch(_ context.Context, operations ...*storage.Operation) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, op := range operations {
		switch op.Type {
		case storage.Get:
			op.Value = m.values[op.Key]
		case storage.Set:
			m.values[op.Key] = op.Value
		case storage.Delete:
			delete(m.values, op.Key)
		}
	}
	return nil
}

func (m *memory) Close(context.Context) error { return nil }
