"""The gateways of the benchmark, one in each module. `ALL` has them in the order of the columns."""

from rig.gateways.base import Gateway, Site
from rig.gateways.direct import Direct
from rig.gateways.gatehouse import Gatehouse, GatehouseTls, Inspecting, Libraries, OneCore
from rig.gateways.litellm import LiteLLM
from rig.gateways.nginx import Nginx, NginxTls
from rig.gateways.portkey import Portkey
from rig.gateways.tensorzero import TensorZero

ALL: dict[str, type[Gateway]] = {
    kind.name: kind
    for kind in (
        Direct,
        Nginx,
        LiteLLM,
        Portkey,
        TensorZero,
        Gatehouse,
        Inspecting,
        OneCore,
        Libraries,
        NginxTls,
        GatehouseTls,
    )
}

__all__ = ["ALL", "Gatehouse", "Gateway", "Site"]
