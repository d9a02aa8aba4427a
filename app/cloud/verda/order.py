"""The body of an order.

Written by us and not by the SDK's `instances.create`, which loses the id of a machine that is already being billed when
the look-up it does afterwards fails, and which cannot send tags (SDK 1.25).
"""

from app.domain.machine import Order
from app.domain.offering import Contract


def order_body(order: Order) -> dict[str, object]:
    """The JSON of `POST /instances` (Verda OpenAPI).

    The location is always sent, as the API has had no default since March 2026. `is_spot` and `contract` always agree,
    as nobody says which of them wins. `pricing` is deprecated and left out.
    """
    spot = order.contract is Contract.SPOT
    body: dict[str, object] = {
        "instance_type": order.instance_type,
        "image": order.image,
        "hostname": order.hostname,
        "description": order.description,
        "location_code": order.location,
        "ssh_key_ids": list(order.ssh_key_ids),
        "is_spot": spot,
        "contract": "SPOT" if spot else "PAY_AS_YOU_GO",
    }
    if order.startup_script_id:
        body["startup_script_id"] = order.startup_script_id
    if order.tags:
        body["tags"] = [{"key": key, "value": value} for key, value in order.tags]
    if order.os_volume:
        disk: dict[str, object] = {"name": order.os_volume.name, "size": order.os_volume.size_gb}
        if spot:
            # The API's own default keeps the disk, and its bill, for every eviction; on any other machine the field
            # is an error.
            disk["on_spot_discontinue"] = "delete_permanently" if order.os_volume.permanent else "move_to_trash"
        body["os_volume"] = disk
    return body
