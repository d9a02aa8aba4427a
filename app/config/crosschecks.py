"""Rules between sections, which no single model can see."""

from app.config import shape
from app.config.draft import Draft
from app.config.merge import groups
from app.config.model import Config


def refuse_gpu_labels(draft: Draft) -> None:
    """Refuse the GPU label on CPU groups: its presence, whatever its value, makes the autoscaler wait for GPUs."""
    label = draft.data.get("gpu_label") or Config.model_fields["gpu_label"].default
    for name, group in groups(draft).items():
        labels, instance_type = group.get("labels"), group.get("instance_type")
        if not isinstance(labels, dict) or not isinstance(instance_type, str) or not isinstance(label, str):
            continue
        path = (shape.GROUPS, name, "labels", label)
        if label in labels and instance_type.startswith("CPU.") and not draft.is_spoiled(path):
            draft.refuse(
                path,
                f"must not stand on a group without GPUs ({instance_type}), with any value: "
                "Cluster Autoscaler would wait for a GPU that never comes; remove the label",
            )
