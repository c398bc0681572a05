import torch

from pit_model.adam import Adam


def gradients(step):
    generator = torch.Generator().manual_seed(step)
    return [torch.randn(shape, generator=generator) * 10.0**-step for shape in ((3, 4), (5,), (2,))]


def weights():
    return [torch.nn.Parameter(torch.ones(shape)) for shape in ((3, 4), (5,), (2,))]


def test_it_is_the_adam_of_torch():
    mine, theirs = weights(), weights()
    a = Adam([(mine[:1], 0.01), (mine[1:], 0.002)])
    b = torch.optim.Adam([{"params": theirs[:1]}, {"params": theirs[1:], "lr": 0.002}], lr=0.01)
    for step in range(6):
        for group in (mine, theirs):
            for p, g in zip(group, gradients(step), strict=True):
                p.grad = g.clone()
        mine[2].grad = theirs[2].grad = None  # no loss reaches it
        a.step()
        b.step()
        for p, q in zip(mine, theirs, strict=True):
            assert torch.allclose(p, q, rtol=0, atol=1e-7)
    a.zero_grad()
    assert all(p.grad is None for p in mine)


def test_it_warms_up_evenly():
    """The same gradient again and again makes Adam move by its step size, times the share."""
    (weight,) = weights()[2:]
    adam = Adam([([weight], 0.01)], warmup=4)
    for share in (0.25, 0.5, 0.75, 1.0, 1.0):
        before = weight.detach().clone()
        weight.grad = torch.ones(2)
        adam.step()
        assert torch.allclose(before - weight, torch.full((2,), 0.01 * share), rtol=1e-4)


def test_it_decays_evenly():
    (weight,) = weights()[2:]
    adam = Adam([([weight], 0.01)], decay=(2, 6))
    for share in (1.0, 1.0, 1.0, 0.75, 0.5, 0.25, 1.0):
        before = weight.detach().clone()
        weight.grad = torch.ones(2)
        adam.step()
        assert torch.allclose(before - weight, torch.full((2,), 0.01 * share), rtol=1e-4)


def test_its_state_can_be_taken_over():
    one, two = weights(), weights()
    a, b = Adam([(one, 0.01)]), Adam([(two, 0.01)])
    for step in range(4):
        if step == 2:
            b.load_state_dict(a.state_dict())
            for p, q in zip(one, two, strict=True):
                q.data.copy_(p.data)
        for p, q, g in zip(one, two, gradients(step), strict=True):
            p.grad, q.grad = g.clone(), g.clone()
        a.step()
        b.step()
    assert all(torch.equal(p, q) for p, q in zip(one, two, strict=True))
