"""Every shader compiles in a browser, under WebGPU's default limits."""

from playwright.sync_api import Browser

from hushsplat.engines.webgpu.device import SHADERS, source

ADDRESS = "https://shaders.test/"  # WebGPU wants a secure origin; nothing is fetched
COMPILE = """
async (shaders) => {
  const adapter = await navigator.gpu?.requestAdapter();
  if (!adapter) return {adapter: ['the browser has no adapter']};
  const device = await adapter.requestDevice();
  const problems = {};
  for (const [name, code] of Object.entries(shaders)) {
    const found = problems[name] = [];
    const module = device.createShaderModule({code, label: name});
    for (const each of (await module.getCompilationInfo()).messages) found.push(`${each.lineNum}: ${each.message}`);
    try {
      if (code.includes('@compute')) {
        await device.createComputePipelineAsync({layout: 'auto', compute: {module, entryPoint: 'main'}});
        continue;
      }
      const blended = {format: 'rgba16float'}, stochastic = name === 'raster';
      const targets = stochastic ? [{format: 'r32uint'}] : name === 'blend' ? [blended, blended] : [];
      const depth = {format: 'depth32float', depthWriteEnabled: stochastic, depthCompare: 'greater'};
      for (const entryPoint of stochastic ? ['plane', 'exact'] : ['fragment']) {
        await device.createRenderPipelineAsync({
          layout: 'auto',
          vertex: {module, entryPoint: 'vertex'},
          fragment: {module, entryPoint, targets},
          depthStencil: name === 'blend' ? undefined : depth,
        });
      }
    } catch (error) {
      found.push(error.message);
    }
  }
  return problems;
}
"""


def problems(browser: Browser, shaders: dict[str, str]) -> dict[str, list[str]]:
    page = browser.new_page()
    page.route("**/*", lambda route: route.fulfill(body="<!doctype html><title>shaders</title>"))
    page.goto(ADDRESS)
    return page.evaluate(COMPILE, shaders)


def test_every_shader_compiles_in_the_browser_and_a_broken_one_does_not(webgpu_browser: Browser) -> None:
    names = sorted(path.name.removesuffix(".wgsl") for path in SHADERS.iterdir())
    shaders = {name: source(name) for name in names if not name.startswith(("lib_", "spec"))}
    assert {"raster", "blend", "trust", "compose"} <= set(shaders)
    broken = shaders["mark"] + "\nfn broken() -> u32 { return nothing_has_this_name; }\n"
    found = problems(webgpu_browser, {**shaders, "broken": broken})
    assert found.pop("broken")
    assert found == {name: [] for name in shaders}
