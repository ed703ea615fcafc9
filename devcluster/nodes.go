package main

import (
	"context"
	"fmt"
	"runtime"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Nodes with this annotation are simulated; kwok leaves others alone, so that a
// real node can stand beside them. It is kwok's own convention.
const (
	simulatedNodeKey   = "kwok.x-k8s.io/node"
	simulatedNodeValue = "fake"
)

// createNodes creates the simulated nodes node-0, node-1, …
func createNodes(ctx context.Context, client kubernetes.Interface, count int) error {
	for i := range count {
		node := simulatedNode(fmt.Sprintf("node-%d", i))
		if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating Node/%s: %w", node.Name, err)
		}
	}
	return nil
}

func simulatedNode(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{simulatedNodeKey: simulatedNodeValue},
			Labels: map[string]string{
				corev1.LabelHostname:   name,
				corev1.LabelOSStable:   "linux",
				corev1.LabelArchStable: runtime.GOARCH,
			},
		},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: capacity,
			NodeInfo: corev1.NodeSystemInfo{OperatingSystem: "linux", Architecture: runtime.GOARCH, KubeletVersion: version()},
		},
	}
}

// capacity is what each simulated node offers.
var capacity = corev1.ResourceList{
	corev1.ResourceCPU:              resource.MustParse("4"),
	corev1.ResourceMemory:           resource.MustParse("32Gi"),
	corev1.ResourcePods:             resource.MustParse("200"),
	corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
}

// nodeProblem says what keeps the nodes from taking pods, "" for nothing.
func nodeProblem(ctx context.Context, client kubernetes.Interface, count int) (string, error) {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", fmt.Errorf("listing the nodes: %w", err)
	}
	if len(nodes.Items) < count {
		return fmt.Sprintf("%d of %d nodes exist", len(nodes.Items), count), nil
	}
	for _, node := range nodes.Items { // one that isn't ready has a taint
		for _, taint := range node.Spec.Taints {
			return "Node/" + node.Name + " has the taint " + taint.Key, nil
		}
	}
	return "", nil
}
