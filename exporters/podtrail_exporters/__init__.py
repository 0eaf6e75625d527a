"""Where spans go: exporters deliver a batch or say why not; queue, retry and counting are done around them."""
