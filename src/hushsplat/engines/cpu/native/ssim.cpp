// Structural similarity of two pictures (window: 11 px Gaussian of sigma 1.5, zeros outside, as 3DGS) and its gradient.
#include <vector>

#include "kernels.h"
#include "threads.h"

namespace hush::HUSH_ISA {
namespace {

constexpr int kReach = 5;  // px
constexpr float kC1 = 0.01f * 0.01f, kC2 = 0.03f * 0.03f;

struct Window {
    float tap[2 * kReach + 1];
    Window() {
        float sum = 0;
        for (int k = -kReach; k <= kReach; ++k) sum += tap[k + kReach] = __builtin_expf(-k * k / (2 * 1.5f * 1.5f));
        for (float& t : tap) t /= sum;
    }
};
const Window kWindow;

// `lines` planes of one colour channel, with zeros around each line and above and below each plane.
struct Planes {
    int width, height, stride;
    Buffer<float> data;

    Planes(int planes, int w, int h) : width(w), height(h), stride(w + 2 * kReach) {
        const size_t n = (size_t)planes * (h + 2 * kReach) * stride;
        data.resize(n);
        std::memset(data.get(), 0, n * sizeof(float));
    }
    float* line(int plane, int y) const {
        return data.get() + ((size_t)plane * (height + 2 * kReach) + y + kReach) * stride + kReach;
    }
};

void blur_across(const float* from, int width, float* to) {
    for (int x = 0; x < width; ++x) {
        float sum = 0;
        for (int k = -kReach; k <= kReach; ++k) sum += kWindow.tap[k + kReach] * from[x + k];
        to[x] = sum;
    }
}

void blur_down(const Planes& from, int plane, int y, float* to) {
    for (int x = 0; x < from.width; ++x) to[x] = 0;
    for (int k = -kReach; k <= kReach; ++k) {
        const float tap = kWindow.tap[k + kReach];
        const float* line = from.line(plane, y + k);
        for (int x = 0; x < from.width; ++x) to[x] += tap * line[x];
    }
}

// Room for a line with zeros around it.
struct Line {
    std::vector<float> data;
    explicit Line(int width) : data(width + 2 * kReach, 0.0f) {}
    float* get() { return data.data() + kReach; }
};

}  // namespace

double ssim(const float* first, const float* second, int width, int height, int threads, float* by_first) {
    enum { kMeanX, kMeanY, kXX, kYY, kXY, kMoments };
    enum { kByMean, kByXX, kByXY, kParts };
    Planes moments(3 * kMoments, width, height), parts(3 * kParts, width, height);
    parallel_for(3 * height, threads, [&](int job) {
        const int channel = job / height, y = job % height;
        Line x(width), z(width), product(width);
        for (int k = 0; k < width; ++k) {
            x.get()[k] = first[3 * ((size_t)y * width + k) + channel];
            z.get()[k] = second[3 * ((size_t)y * width + k) + channel];
        }
        auto blur_product = [&](float* a, float* b, int moment) {
            for (int k = 0; k < width; ++k) product.get()[k] = a[k] * b[k];
            blur_across(product.get(), width, moments.line(kMoments * channel + moment, y));
        };
        blur_across(x.get(), width, moments.line(kMoments * channel + kMeanX, y));
        blur_across(z.get(), width, moments.line(kMoments * channel + kMeanY, y));
        blur_product(x.get(), x.get(), kXX);
        blur_product(z.get(), z.get(), kYY);
        blur_product(x.get(), z.get(), kXY);
    });
    std::vector<double> sums(3 * height);
    parallel_for(3 * height, threads, [&](int job) {
        const int channel = job / height, y = job % height;
        std::vector<float> m[kMoments];
        for (int k = 0; k < kMoments; ++k) {
            m[k].resize(width);
            blur_down(moments, kMoments * channel + k, y, m[k].data());
        }
        Line part[kParts] = {Line(width), Line(width), Line(width)};
        double sum = 0;
        for (int k = 0; k < width; ++k) {
            const float mx = m[kMeanX][k], my = m[kMeanY][k];
            const float a1 = 2 * mx * my + kC1, a2 = 2 * (m[kXY][k] - mx * my) + kC2;
            const float b1 = mx * mx + my * my + kC1, b2 = m[kXX][k] - mx * mx + m[kYY][k] - my * my + kC2;
            const float scale = 1 / (b1 * b2), s = a1 * a2 * scale;
            part[kByMean].get()[k] = 2 * my * (a2 - a1) * scale - 2 * mx * s * (1 / b1 - 1 / b2);
            part[kByXX].get()[k] = -s / b2;
            part[kByXY].get()[k] = 2 * a1 * scale;
            sum += s;
        }
        sums[job] = sum;
        for (int k = 0; k < kParts; ++k) blur_across(part[k].get(), width, parts.line(kParts * channel + k, y));
    });
    const double count = 3.0 * width * height;
    const float share = (float)(1 / count);
    parallel_for(3 * height, threads, [&](int job) {
        const int channel = job / height, y = job % height;
        std::vector<float> p[kParts];
        for (int k = 0; k < kParts; ++k) {
            p[k].resize(width);
            blur_down(parts, kParts * channel + k, y, p[k].data());
        }
        for (int k = 0; k < width; ++k) {
            const size_t at = 3 * ((size_t)y * width + k) + channel;
            by_first[at] = share * (p[kByMean][k] + 2 * first[at] * p[kByXX][k] + second[at] * p[kByXY][k]);
        }
    });
    double total = 0;
    for (double s : sums) total += s;
    return total / count;
}

}  // namespace hush::HUSH_ISA
